"""Mail drawn at random or from the past, labelled by a person, and a suite that is sealed."""

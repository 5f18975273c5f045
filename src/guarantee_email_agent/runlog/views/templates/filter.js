// Shows only the cases that fit what is chosen. The page can be read without it.
(() => {
  const form = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const cases = Array.from(document.querySelectorAll("#cases > .case"));
  const titles = cases.map((each) => each.firstElementChild.textContent.toLowerCase());
  const [words, outcome, group, language] = ["words", "outcome", "group", "language"].map((id) =>
    document.getElementById(id),
  );

  const fits = (each, index, wanted) =>
    (outcome.value === "" ||
      (outcome.value === "-passed" ? each.dataset.outcome !== "passed" : each.dataset.outcome === outcome.value)) &&
    (group.value === "" || each.dataset.group === group.value) &&
    (language.value === "" || each.dataset.language === language.value) &&
    wanted.every((word) => titles[index].includes(word));

  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    cases.forEach((each, index) => {
      const hidden = !fits(each, index, wanted);
      if (each.hidden !== hidden) each.hidden = hidden;
      count += hidden ? 0 : 1;
    });
    shown.textContent = `${count.toLocaleString("en")} of ${cases.length.toLocaleString("en")} shown`;
  };

  const openTarget = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target instanceof HTMLDetailsElement) {
      target.hidden = false;
      target.open = true;
      target.scrollIntoView();
    }
  };

  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", openTarget);
  form.hidden = cases.length < 2;
  filter();
  openTarget();
})();

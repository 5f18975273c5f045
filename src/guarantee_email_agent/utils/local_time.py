"""Moments as people on the spot read them: in the zone of the configuration, or else of the machine."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY: timedelta = timedelta(days=1)


class LocalTime:
    """zone: such as Europe/Berlin; None is the machine's, by $TZ or its settings. Raises KeyError for one unknown."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone: tzinfo | None = None
        if zone is not None:
            from zoneinfo import ZoneInfo

            self._zone = ZoneInfo(zone)

    def at(self, seconds: float) -> datetime:
        """seconds: since 1970; a moment that no calendar has becomes the nearest that has one."""
        try:
            return datetime.fromtimestamp(seconds, UTC).astimezone(self._zone)
        except (ValueError, OverflowError, OSError):  # a clock that was wrong, or a damaged row
            return datetime(1970, 1, 1, tzinfo=UTC)

    def text(self, seconds: float) -> str:
        """`2026-01-18 10:23:45`."""
        return f"{self.at(seconds):%Y-%m-%d %H:%M:%S}"

    def zone_at(self, seconds: float) -> str:
        """`CET, UTC+01:00`."""
        moment = self.at(seconds)
        offset = f"{moment:%z}"
        name, numeric = moment.tzname() or "", f"UTC{offset[:3]}:{offset[3:5]}"
        if name == "UTC":
            return name
        return numeric if not name or name[0] in "+-" else f"{name}, {numeric}"

    def seconds(self, day: date, clock: time = time()) -> float:
        """When it is `clock` on that day, in seconds since 1970; of two such moments the first.

        One that the change to summer time leaves out comes as much later as that change.
        """
        moment = datetime.combine(day, clock)
        return (moment.replace(tzinfo=self._zone) if self._zone is not None else moment).timestamp()

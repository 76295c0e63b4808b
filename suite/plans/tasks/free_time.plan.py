from datetime import datetime, timedelta

events = get_day_calendar_events("2024-05-15")
busy = sorted((datetime.fromisoformat(e["start_time"]), datetime.fromisoformat(e["end_time"])) for e in events)
day_start = datetime(2024, 5, 15, 9, 0)
day_end = datetime(2024, 5, 15, 17, 0)
free = []
current = day_start
for start, end in busy:
    if start > current:
        free.append((current, start))
    current = max(current, end)
if current < day_end:
    free.append((current, day_end))
for start, end in free:
    print(f"{start:%H:%M} - {end:%H:%M}")

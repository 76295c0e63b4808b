from datetime import date, timedelta

today = date.fromisoformat(get_current_day())
days = [today + timedelta(days=i) for i in range(7)]
for day in days:
    events = get_day_calendar_events(day.isoformat())
    if events:
        titles = ", ".join(e["title"] for e in events)
        print(f"{day.strftime('%A')}: {titles}")

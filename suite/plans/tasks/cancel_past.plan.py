from datetime import datetime

now = datetime.now()
cancelled = 0
for event in search_calendar_events(query="Team Sync"):
    if datetime.fromisoformat(event.start_time) > now:
        cancel_calendar_event(event_id=event.id)
        cancelled += 1
print(f"{cancelled} cancelled")

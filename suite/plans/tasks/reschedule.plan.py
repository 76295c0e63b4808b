from datetime import datetime, timedelta

events = search_calendar_events(query="Dental check-up")
event = events[0]
start = datetime.strptime(event["start_time"], "%Y-%m-%d %H:%M")
end = datetime.strptime(event["end_time"], "%Y-%m-%d %H:%M")
duration = end - start
new_start = datetime(2024, 5, 20, 10, 0)
reschedule_calendar_event(
    event_id=event["id"],
    new_start_time=new_start.isoformat(),
    new_end_time=(new_start + duration).isoformat(),
)
print("done")

from datetime import datetime, timedelta

today = datetime.fromisoformat(get_current_day())
tomorrow = today + timedelta(days=1)
start = tomorrow.replace(hour=14, minute=0)
end = start + timedelta(minutes=30)
event = create_calendar_event(
    title="Lunch",
    start_time=start.strftime("%Y-%m-%d %H:%M"),
    end_time=end.strftime("%Y-%m-%d %H:%M"),
    participants=["sarah.baker@gmail.com"],
)
print(event.id)

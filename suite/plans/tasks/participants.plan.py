events = get_day_calendar_events("2024-05-15")
participants = {person for event in events for person in event["participants"] if person != "me@example.com"}
print(*sorted(participants), sep="\n")

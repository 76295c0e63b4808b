for day in ["2024-05-15", "2024-05-16"]:
    if (n := len(get_day_calendar_events(day))) > 3:
        print(f"{day}: {n}")

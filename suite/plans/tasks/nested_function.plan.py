def overlap(a, b):
    return a["start_time"] < b["end_time"] and b["start_time"] < a["end_time"]

events = get_day_calendar_events("2024-05-15")
conflicts = []
for i in range(len(events)):
    for j in range(i + 1, len(events)):
        if overlap(events[i], events[j]):
            conflicts.append((events[i]["title"], events[j]["title"]))
for a, b in conflicts:
    print(f"{a} overlaps {b}")

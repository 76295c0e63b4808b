from collections import Counter

locations = [e["location"] for e in search_calendar_events("") if e["location"]]
if locations:
    place, times = Counter(locations).most_common(1)[0]
    print(f"{place}: {times}")

from statistics import mean

hotels = get_hotels("London")
print(f"average {mean(h.rating for h in hotels):.1f}")

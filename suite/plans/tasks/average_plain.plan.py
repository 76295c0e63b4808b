hotels = get_hotels("London")
ratings = list(map(lambda h: h.rating, hotels))
average = sum(ratings) / len(ratings) if ratings else 0
above = list(filter(lambda h: h.rating > average, hotels))
print(f"{average:.1f}", [h.name for h in above])

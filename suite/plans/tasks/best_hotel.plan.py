hotels = get_all_hotels_in_city("Paris")
reviews = get_rating_reviews(hotels)
best = max(hotels, key=lambda h: ask(f"What is the rating of {h} in this text? {reviews}", float) or 0)
print(f"The best hotel is {best}")

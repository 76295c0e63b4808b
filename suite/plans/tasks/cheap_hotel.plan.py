hotels = get_hotels("Paris")
good = [h for h in hotels if h.rating >= 4.0 and h.price <= 200]
good.sort(key=lambda h: (h.price, -h.rating))
if not good:
    print("There is no such hotel.")
else:
    hotel = good[0]
    reserve_hotel(hotel=hotel.name, start_day="2024-10-11", end_day="2024-10-14")
    print(f"Reserved {hotel.name} at {hotel.price} per night")

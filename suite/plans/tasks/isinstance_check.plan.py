prices = get_hotels_prices(get_all_hotels_in_city("Paris"))
if isinstance(prices, dict):
    for name, price in prices.items():
        print(f"{name}: {price}")
else:
    print(prices)

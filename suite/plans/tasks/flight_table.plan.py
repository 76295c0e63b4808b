info = get_flight_information(departure="Paris", arrival="Berlin")
rows = [line.split("|") for line in info.split("\n") if "|" in line]
flights = []
for row in rows:
    airline, number, price = [cell.strip() for cell in row[:3]]
    flights.append({"airline": airline, "number": number, "price": float(price.lstrip("$").replace(",", ""))})
cheapest = min(flights, key=lambda f: f["price"], default=None)
print(cheapest["number"] if cheapest else "no flight")

wanted = {"pens": 10, "paper": 5, "ink": 2}
total = 0
for name, quantity in wanted.items():
    products = [p for p in get_products(name) if p.stock >= quantity]
    if not products:
        print(f"{name}: not available")
        continue
    product = min(products, key=lambda p: p.price)
    place_order(product_id=product.id, quantity=quantity)
    total += product.price * quantity
    print(f"{name}: {product.name} x {quantity}")
print(f"total {total:.2f}")

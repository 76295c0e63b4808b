iban = get_iban()
text = read_file("bill.txt")
amount = ask(f"Which amount is due? {text}", float)
try:
    send_money(recipient="UK12345678901234567890", amount=amount, subject="Bill", date="2024-01-01")
    print("paid")
except PolicyError as e:
    print(f"not allowed: {e}")

def format_amount(amount: float, currency: str = "EUR") -> str:
    return f"{amount:,.2f} {currency}"

def main():
    balance = get_balance()
    if balance < 100:
        print("Low balance: " + format_amount(balance))
    else:
        print("Balance: " + format_amount(balance))

main()

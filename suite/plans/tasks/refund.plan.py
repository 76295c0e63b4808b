transactions = get_most_recent_transactions(n=10)
spotify = [t for t in transactions if "Spotify" in t.subject]
if spotify:
    first, *others = spotify
    print(first.amount, len(others))

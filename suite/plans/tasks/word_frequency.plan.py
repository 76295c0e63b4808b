from collections import Counter

messages = read_channel_messages("general")
words = Counter(w.strip(".,!?").lower() for m in messages for w in m["body"].split())
for word, n in words.most_common(5):
    print(f"{word}: {n}")

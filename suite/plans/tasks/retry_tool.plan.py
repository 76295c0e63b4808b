text = None
for attempt in range(3):
    try:
        text = get_webpage("www.example.com/report")
        break
    except Exception as e:
        print(f"attempt {attempt + 1} failed: {e}")
if text is None:
    print("the page can't be read")
else:
    print(text[:200])

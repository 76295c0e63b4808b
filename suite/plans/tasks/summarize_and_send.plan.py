article = get_webpage("www.our-company.com")
summary = ask(f"Summarize this article in two sentences: {article}", str)
send_direct_message(recipient="Alice", body=summary)

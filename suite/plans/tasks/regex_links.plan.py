import re

page = get_webpage("www.informations.com")
links = re.findall(r"https?://[^\s)]+", page)
emails = re.findall(r"[\w.+-]+@[\w-]+\.[\w.]+", page)
print(f"{len(set(links))} links, {len(set(emails))} addresses")
for link in dict.fromkeys(links):
    print(link)

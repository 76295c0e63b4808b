import json

data = json.loads(get_webpage("api.example.com/users"))
names = [user.get("name", "unknown") for user in data["users"] if user.get("active")]
print(json.dumps(sorted(names)))

users = set()
for channel in get_channels():
    users.update(get_users_in_channel(channel))
for user in sorted(users):
    send_direct_message(recipient=user, body="The office is closed on Friday.")
print(f"{len(users)} people were told")

# %% [markdown]
# needs: h11

# %%
import h11
client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
sent = client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
print(sent)

# %%
server.receive_data(sent)
event = server.next_event()
print(event.method, server.states[h11.CLIENT])

# %%
rest = client.send(h11.EndOfMessage())
print(client.our_state, client.our_state is h11.DONE, server.next_event())

# %%
server.receive_data(rest)
answer = server.send(h11.Response(status_code=204, headers=[])) + server.send(h11.EndOfMessage())
print(server.our_state, server.our_state is h11.DONE)

# %%
client.receive_data(answer)
print(client.next_event().status_code, type(client.next_event()).__name__)

# %%
client.start_next_cycle()
print(client.our_state is h11.IDLE, client.next_event() is h11.NEED_DATA)

# %%
# raises: LocalProtocolError
client.send(h11.EndOfMessage())

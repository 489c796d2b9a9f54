"""Who gets which slot, and when: pure decisions. Events and a time in, actions out.

`machine` takes in one event at a time and `state` holds what is known; what they are made of lies in the folders: what
people are told (`estimates`), what comes in (`admission`), where it fits (`placement`), who is next (`queue`), who has
what (`accounts`), what there is (`nodes`), what is asked for (`leases`), and what admins have set (`policy`).
"""

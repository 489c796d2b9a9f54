"""How the sides of Bulletin talk: closed messages, frames with limits, encryption, bulk bytes. No policy, no pickle."""

"""Who gets which slot, and when: pure decisions. Events and a time in, actions out."""

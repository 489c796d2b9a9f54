"""What people see in the notebook: what cells print and display, and Bulletin's own words.

Messages of a cell become outputs (`output_writer`, `widget_comms`, `widget_models`, `late_output`); what was shown is
kept for a page that was closed meanwhile (`cell_outputs`, `output_history`, `page_tracker`, `missed_output`); our own
words are `notes`, `receipts` and `text_table`. `frontend` says who asked. Runs nothing.
"""

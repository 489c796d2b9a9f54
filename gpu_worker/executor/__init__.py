"""The program that runs cells, in the user's environment: a zygote, and the executors that it forks."""

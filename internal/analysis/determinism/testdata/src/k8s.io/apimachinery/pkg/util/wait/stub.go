package wait

package workqueue

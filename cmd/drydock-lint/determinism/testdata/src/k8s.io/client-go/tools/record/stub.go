package record

type EventBroadcaster interface{}

func NewBroadcaster() EventBroadcaster { return nil }

func NewEventCorrelator(c any) any { return nil }

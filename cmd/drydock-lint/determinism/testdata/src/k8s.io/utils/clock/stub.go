package clock

type PassiveClock interface{}

type RealClock struct{}

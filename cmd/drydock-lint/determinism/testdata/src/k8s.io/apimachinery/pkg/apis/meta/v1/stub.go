package v1

import "time"

type Time struct{ time.Time }

func NewTime(t time.Time) Time { return Time{t} }
func Now() Time                { return Time{} }
func NowMicro() Time           { return Time{} }

package fakecri

// warner says what is not acted on, once of each image.
type warner struct {
	to     func(string) // nil: nobody wants to know
	warned map[string]bool
}

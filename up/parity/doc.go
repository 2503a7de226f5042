// Package parity holds an API that is served against recordings of a real one:
// it sends a recording's requests and judges the answers.
//
//	c, err := parity.Parse(file)
//	seen := parity.Replay(ctx, parity.Server{URL: ..., Token: ..., Client: ...}, c)
//	for _, d := range parity.Judge(c, seen) {
//		fmt.Println(d)
//	}
//
// What no two runs have in common stands in a recording as a placeholder. A
// placeholder takes any text of its form, but the same one each time, and
// different ones differ:
//
//	<uid:2>        a UID; those of a kind are numbered
//	<rv:3>         the third version, in the order of time, of those that the case saw
//	<rv:3+>        a list's: at or after the third, before the fourth
//	<rv>           a version that is none of them
//	<time>         about when the request was sent, or earlier in the case; <microtime> with a fraction
//	<time+30>      30 s after one of the requests
//	<time:changed> another creationTimestamp than the object had before
//	<age>          how long ago, as in tables
//	web-<gen:1>    a generated name; <gen> without a number is any
//	<clusterIP:1>, <nodePort:1>, <jwt>, <continue>
//
// Of /version, only the types of what identifies a build are compared. The order
// of an error's causes, in its message as well, and of warnings does not count.
package parity

package main

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/drydock-sim/drydock/scenarios"
)

func main() {
	if f := os.Getenv("PROF"); f != "" {
		w, _ := os.Create(f)
		_ = pprof.StartCPUProfile(w)
		defer pprof.StopCPUProfile()
	}
	list, err := scenarios.LoadPaths(os.Args[1:2], scenarios.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	for _, s := range list {
		res, err := s.Run(context.Background(), scenarios.RunOptions{Timeline: os.Stdout, Clock: time.Now, Until: until(),Workers: workers(), Verbose: len(os.Args) > 2})
		fmt.Println(err)
		for _, v := range res.Verdicts {
			fmt.Println(v.Outcome, v.Expectation.Form, v.Expectation.Expr, v.Reason)
			for _, x := range v.Values {
				fmt.Println("    ", x.Expr, "=", x.Value)
			}
		}
		fmt.Printf("%+v\n%v\n%v\n", res.Summary, res.Warnings, res.Errors)
	}
}

func until() time.Duration { d, _ := time.ParseDuration(os.Getenv("UNTIL")); return d }
func workers() int { n, _ := strconv.Atoi(os.Getenv("WORKERS")); return max(n, 1) }

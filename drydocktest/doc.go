// Package drydocktest runs controllers in tests against a simulated cluster, in virtual
// time: pods start, crash and are evicted, nodes die, and hours pass in a second.
//
//	func TestShop(t *testing.T) {
//		drydocktest.Run(t, drydocktest.Options{Scenario: "testdata/five-nodes.yaml", CRDs: []string{"config/crd/bases"}}, func(t *testing.T, c *drydocktest.Cluster) {
//			c.Go("manager", func(ctx context.Context) error {
//				mgr, err := newManager(c.Config("shop-operator"))
//				if err != nil {
//					return err
//				}
//				return mgr.Start(ctx)
//			})
//			c.Node("n0").PowerCut(20 * time.Minute)
//			time.Sleep(10 * time.Minute) // of the cluster's time
//			c.Expect(t, `pods("default").all(p, p.spec.nodeName != "n0")`)
//		})
//	}
//
// # The bubble
//
// Everything stands in one bubble of testing/synctest: the test, the controllers that it
// starts, and a goroutine that drives the cluster's engine ([pump]). The bubble is like
// one more loop of the engine. Time is cut into windows of one lookahead, the least time
// that a message takes. When the bubble's clock has come to the end of a window, all that
// was asked for in it is known; the pump sorts it by who asked when for what, hands it to
// the API's loop, where each request arrives after its latency, and runs the engine up to
// that time. So the order in which goroutines of one instant happen to run has no say.
//
// Answers and events of watches reach clients at instants that no two of them share, so
// that what one sets off is over before the next one comes.
//
// What still depends on chance is in the client's own libraries: the order of maps and
// the choice among several ready cases of a select. So the same seed gives the same trace
// in practice; [Cluster.Hash] says whether it did.
//
//   - run.go: a bubble's beginning and end
//   - cluster.go: what a test does with its cluster; definitions.go: custom resources
//   - pump.go: the time of the cluster follows that of the bubble
//   - door.go: requests on their way to the API, answers and events on theirs back
//   - transport.go: the clients' side; requests.go: what was asked for
//   - serve.go: webhooks and other servers, which have no sockets either
//   - suite.go: whole suites, and specs of other runners
//   - client.go: a client for the test's own requests
//   - procs.go: what runs beside the test, its ends and its crashes
//   - api.go, nodes.go: what goes wrong
//   - troubles.go: what goes wrong with a test itself
//   - child.go: runs that are compared; explore.go, plan.go: runs in which things go wrong
//   - seeds.go: randomness of the process, its logs and its garbage
package drydocktest

// Package scale measures how long the Windows nodes of a cluster need to program many Services: until
// kube-proxy has synchronized its rules, and until the Host Network Service (HNS) of the node has the load
// balancers with their endpoints.
//
//   - load.go: the objects of a run; plan.go: the same for --dry-run; write.go: writing them
//   - run.go: a run and its phases; board.go: which Services have to be programmed, and since when
//   - watcher.go: one node during a run; balancers.go: its load balancers; metrics.go: kube-proxy's own
//     metrics; sampler.go: CPU time and memory; logs.go: the errors that kube-proxy logged
//   - result.go: the result of a run, and its verdict; report.go: as text; files.go: its files
//   - page.go, curve.go, page.html: as one page with curves
//   - compare.go: two runs beside each other
//
// The Services have no selector, so no controller touches their EndpointSlices. The addresses of the
// endpoints lead nowhere, and swdt sends no traffic to the Services.
//
// The truth about a Service is its load balancer in HNS: a Service counts as programmed once a look at HNS
// finds a load balancer with its address and port, and with the addresses of its endpoints and no others.
// Looks cost time on the node, so they are rare, and each measured time has a resolution: the Service was
// programmed at some moment between the look before and the look that found it. ADR 40 has the
// alternatives.
package scale

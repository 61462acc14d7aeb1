package forge

// ValidateGraph checks the jobs of one run together: each by itself, no key and leg twice, every need known, and no job
// waiting for itself, directly or round about.
func ValidateGraph(jobs []Job) error {
	var c checker
	var root *where
	if len(jobs) == 0 {
		c.add(root.in("jobs"), "are missing")
	}
	if !c.count(root.in("jobs"), len(jobs), MaxJobsPerRun) {
		return c.err()
	}
	for i := range jobs {
		c.job(root.item("jobs", i), &jobs[i])
		if jobs[i].Run != jobs[0].Run {
			c.add(root.item("jobs", i).in("run"), "is not that of jobs[0]")
		}
	}
	unique(&c, nil, "jobs", jobs, func(j Job) JobID { return j.ID })
	unique(&c, nil, "jobs", jobs, func(j Job) string { return string(j.Key) + "\x00" + j.Leg.String() })
	c.needs(jobs)
	return c.err()
}

// needs checks that each need is a key of the run, and that the keys can be put in an order. All legs of a key are one
// node: a job needs all of them or none.
func (c *checker) needs(jobs []Job) {
	var root *where
	nodes := make(map[JobKey]*node, len(jobs))
	var order []*node
	for _, j := range jobs {
		if nodes[j.Key] == nil {
			nodes[j.Key] = new(node)
			order = append(order, nodes[j.Key])
		}
	}
	for i, j := range jobs {
		for k, need := range j.Needs {
			at := root.item("jobs", i).item("needs", k)
			switch on := nodes[need.Job]; {
			case on == nil:
				c.add(at, "there is no job %q", clip(string(need.Job)))
			case need.Job == j.Key:
				c.add(at, "the job needs itself")
			default:
				on.neededBy = append(on.neededBy, nodes[j.Key])
				nodes[j.Key].waits++
			}
		}
	}
	if ordered := countOrdered(order); ordered < len(order) {
		c.add(root.in("jobs"), "%d of them wait for each other in a circle, or for such", len(order)-ordered)
	}
}

// node is one key in the graph.
type node struct {
	neededBy []*node
	waits    int // needs that are not in the order yet
}

// countOrdered takes nodes away that wait for nothing, until none is left that can be, and counts them.
func countOrdered(nodes []*node) int {
	var ready []*node
	for _, n := range nodes {
		if n.waits == 0 {
			ready = append(ready, n)
		}
	}
	for done := 0; done < len(ready); done++ {
		for _, next := range ready[done].neededBy {
			if next.waits--; next.waits == 0 {
				ready = append(ready, next)
			}
		}
	}
	return len(ready)
}

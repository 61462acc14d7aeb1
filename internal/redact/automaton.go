package redact

// automaton finds all forms in one pass, after Aho and Corasick: a trie of the forms, in which each node also knows the
// node of its longest proper suffix. Node 0 is the root. Almost every node has one child, so children are linked lists;
// only the root, at which most bytes of a log are looked at, has a table.
type automaton struct {
	root    [256]int32
	nodes   []node
	longest int // bytes of the longest form
}

type node struct {
	label byte
	child int32 // first of the children, 0 for none
	next  int32 // next child of the same parent
	fail  int32 // node of the longest proper suffix that is in the trie
	depth int32
	match int32 // bytes of the longest form that ends here, 0 for none
}

func newAutomaton() *automaton { return &automaton{nodes: make([]node, 1)} }

// insert adds a form, before link.
func (a *automaton) insert(form []byte) {
	at := int32(0)
	for _, b := range form {
		to := a.child(at, b)
		if to == 0 {
			to = a.grow(at, b)
		}
		at = to
	}
	a.nodes[at].match = int32(len(form))
	a.longest = max(a.longest, len(form))
}

func (a *automaton) grow(parent int32, b byte) int32 {
	to := int32(len(a.nodes))
	a.nodes = append(a.nodes, node{label: b, next: a.nodes[parent].child, depth: a.nodes[parent].depth + 1})
	a.nodes[parent].child = to
	if parent == 0 {
		a.root[b] = to
	}
	return to
}

func (a *automaton) child(at int32, b byte) int32 {
	if at == 0 {
		return a.root[b]
	}
	for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
		if a.nodes[c].label == b {
			return c
		}
	}
	return 0
}

// link sets the suffixes, level by level, and lets each node know the longest form that ends at it.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for c := a.nodes[0].child; c != 0; c = a.nodes[c].next {
		queue = append(queue, c)
	}
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := a.nodes[at].child; c != 0; c = a.nodes[c].next {
			fail := a.step(a.nodes[at].fail, a.nodes[c].label)
			a.nodes[c].fail = fail
			if a.nodes[c].match == 0 {
				a.nodes[c].match = a.nodes[fail].match
			}
			queue = append(queue, c)
		}
	}
}

// step goes on from a node with one more byte.
func (a *automaton) step(at int32, b byte) int32 {
	for at != 0 {
		if c := a.child(at, b); c != 0 {
			return c
		}
		at = a.nodes[at].fail
	}
	return a.root[b]
}

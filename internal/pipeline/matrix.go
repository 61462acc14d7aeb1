package pipeline

import (
	"slices"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// parallelAxis is the axis of the copies that parallel makes.
const parallelAxis = "parallel"

// legsOf makes the legs of a job: the product of its axes in their order, the first axis slowest, without what is excluded,
// then what is included besides, then each as often as parallel says. A job without any has none.
func legsOf(r *reader, j *Job) []forge.Leg {
	legs := []forge.Leg{nil}
	if j.Matrix != nil {
		if legs = j.Matrix.legs(r); len(legs) == 0 {
			return nil
		}
	}
	if j.Parallel > 0 {
		if len(legs[0])+1 > forge.MaxAxes {
			r.wrong(CodeLimit, j.At, "", "the job %q has parallel copies and %d axes, more than %d together", j.Key, len(legs[0]), forge.MaxAxes)
			return nil
		}
		if len(legs)*j.Parallel > MaxLegs {
			r.wrong(CodeLimit, j.At, "", "the job %q has %d legs, more than %d", j.Key, len(legs)*j.Parallel, MaxLegs)
			return nil
		}
		var copies []forge.Leg
		for _, leg := range legs {
			for n := range j.Parallel {
				copies = append(copies, append(slices.Clone(leg), forge.AxisValue{Axis: parallelAxis, Value: strconv.Itoa(n + 1)}))
			}
		}
		legs = copies
	}
	if len(legs) == 1 && len(legs[0]) == 0 {
		return nil
	}
	return legs
}

// legs makes the legs of a matrix, or none if there is something wrong with it.
func (m *Matrix) legs(r *reader) []forge.Leg {
	before := len(r.found)
	if len(m.Axes) == 0 && len(m.Include) > 0 {
		for _, v := range m.Include[0].Values {
			if why := nameHint(v.Name); why != "" {
				r.wrong(CodeValue, v.At, why, "%q cannot be a name here", clip(v.Name))
			}
			m.Axes = append(m.Axes, Axis{Name: v.Name, At: v.At})
		}
	}
	product := 1
	for _, a := range m.Axes {
		m.checkAxis(r, a)
		product *= len(a.Values)
		if product > MaxLegs {
			r.wrong(CodeLimit, m.At, "", "the axes make more than %d legs", MaxLegs)
			return nil
		}
	}
	if len(m.Axes) > forge.MaxAxes {
		r.wrong(CodeLimit, m.At, "", "the matrix has %d axes, more than %d", len(m.Axes), forge.MaxAxes)
	}
	m.checkCombinations(r)
	if len(r.found) > before {
		return nil
	}
	legs := m.combine()
	switch {
	case len(legs) == 0:
		r.wrong(CodeValue, m.At, "give it axes, or exclude less", "the matrix has no legs")
	case len(legs) > MaxLegs:
		r.wrong(CodeLimit, m.At, "", "the matrix has %d legs, more than %d", len(legs), MaxLegs)
		return nil
	}
	return legs
}

func (m *Matrix) checkAxis(r *reader, a Axis) {
	if a.Name == parallelAxis {
		r.wrong(CodeValue, a.At, "give the axis another name", "%q is the axis of the copies of a job", parallelAxis)
	}
	if len(a.Values) == 0 && len(m.Include) == 0 {
		r.wrong(CodeValue, a.At, "give it a value, as in [a, b]", "the axis %q has no values", a.Name)
	}
	seen := map[string]bool{}
	for _, v := range a.Values {
		r.literal(v, "write the value out")
		m.checkValue(r, v)
		if seen[v.Value] {
			r.wrong(CodeDuplicate, v.At, "keep one of them", "the axis %q has the value %q twice", a.Name, clip(v.Value))
		}
		seen[v.Value] = true
	}
}

func (m *Matrix) checkValue(r *reader, v Text) {
	if len(v.Value) > forge.MaxTitle || strings.ContainsFunc(v.Value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.wrong(CodeValue, v.At, "", "a value is one line of at most %d bytes", forge.MaxTitle)
	}
}

// checkCombinations checks that included legs name every axis, and excluded ones only axes and values that there are.
func (m *Matrix) checkCombinations(r *reader) {
	var names []string
	for _, a := range m.Axes {
		names = append(names, a.Name)
	}
	for k, list := range [][]Combination{m.Include, m.Exclude} {
		for _, c := range list {
			for _, v := range c.Values {
				i := slices.Index(names, v.Name)
				switch {
				case i < 0:
					r.wrong(CodeReference, v.At, meant(v.Name, names), "the matrix has no axis %q", clip(v.Name))
				case k == 1 && !slices.ContainsFunc(m.Axes[i].Values, func(t Text) bool { return t.Value == v.Value.Value }):
					r.wrong(CodeReference, v.Value.At, "", "the axis %q has no value %q, so this excludes nothing", v.Name, clip(v.Value.Value))
				default:
					m.checkValue(r, v.Value)
				}
			}
			if k == 0 && len(c.Values) < len(names) {
				r.wrong(CodeMissing, c.At, "the axes are "+strings.Join(names, ", "), "a leg that is included names every axis")
			}
		}
	}
}

// combine makes the legs.
func (m *Matrix) combine() (legs []forge.Leg) {
	if len(m.Axes) > 0 {
		legs = []forge.Leg{nil}
	}
	for _, a := range m.Axes {
		var longer []forge.Leg
		for _, leg := range legs {
			for _, v := range a.Values {
				longer = append(longer, append(slices.Clone(leg), forge.AxisValue{Axis: a.Name, Value: v.Value}))
			}
		}
		legs = longer
	}
	legs = slices.DeleteFunc(legs, func(leg forge.Leg) bool {
		return slices.ContainsFunc(m.Exclude, func(c Combination) bool { return c.covers(leg) })
	})
	for _, c := range m.Include {
		leg := make(forge.Leg, 0, len(m.Axes))
		for _, a := range m.Axes {
			leg = append(leg, forge.AxisValue{Axis: a.Name, Value: c.value(a.Name)})
		}
		if !slices.ContainsFunc(legs, func(l forge.Leg) bool { return slices.Equal(l, leg) }) {
			legs = append(legs, leg)
		}
	}
	return legs
}

// covers reports whether a leg has all the values of a combination.
func (c Combination) covers(leg forge.Leg) bool {
	for _, v := range c.Values {
		if !slices.Contains(leg, forge.AxisValue{Axis: v.Name, Value: v.Value.Value}) {
			return false
		}
	}
	return true
}

func (c Combination) value(axis string) string {
	for _, v := range c.Values {
		if v.Name == axis {
			return v.Value.Value
		}
	}
	return ""
}

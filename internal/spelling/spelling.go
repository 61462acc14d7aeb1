// Package spelling finds the word that somebody meant. It is pure.
package spelling

// Bounds of a guess.
const (
	near    = 2  // letters to insert, delete, replace or swap; of a short word fewer
	longest = 64 // bytes of a word that is worth a guess
)

// Nearest returns the candidate that is nearest to a word, the first of several, or "" if none is near.
func Nearest(word string, candidates []string) string {
	if len(word) > longest {
		return ""
	}
	best, least := "", near+1
	for _, c := range candidates {
		if n := distance(word, c); n < least && n <= max(1, len(word)/3) && n < len(word) {
			best, least = c, n
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap that make b of a. Both are short.
func distance(a, b string) int {
	if len(a)-len(b) > near || len(b)-len(a) > near {
		return near + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

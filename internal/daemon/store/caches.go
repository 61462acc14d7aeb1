package store

import (
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// CacheEntry is a cache that a job has left: its folders, in the order of the paths that its job names.
type CacheEntry struct {
	Project forge.ProjectName
	Trust   forge.TrustClass // of the run that made it; no other class finds it
	Key     string
	Trees   []forge.TreeRef
	Bytes   forge.Bytes // of all its files
	Created forge.WallTime
	Used    forge.WallTime // last found
}

const cacheColumns = `c.project, c.trust, c.key, c.trees, c.bytes, c.created_at, c.used_at`

func cacheInto(c *CacheEntry) []any {
	return []any{&c.Project, num(&c.Trust), &c.Key, doc(&c.Trees), num(&c.Bytes), num(&c.Created), num(&c.Used)}
}

// Cache returns the cache with a key, else the newest whose key begins with one of the fallbacks, the first of them that finds
// any, or ErrNotFound. Both ends are those of one project and one class of trust.
func (v *View) Cache(project forge.ProjectName, trust forge.TrustClass, key string, fallback []string) (CacheEntry, error) {
	c, err := one(v, `SELECT `+cacheColumns+` FROM cache c WHERE c.project = ? AND c.trust = ? AND c.key = ?`, cacheInto,
		string(project), toInt(trust), key)
	for i := 0; isNotFound(err) && i < len(fallback); i++ {
		// substr and not LIKE: a key may hold the signs that LIKE takes for others.
		c, err = one(v, `SELECT `+cacheColumns+` FROM cache c WHERE c.project = ? AND c.trust = ? AND substr(c.key, 1, ?) = ?
			ORDER BY c.seq DESC LIMIT 1`, cacheInto, string(project), toInt(trust), int64(len([]rune(fallback[i]))), fallback[i])
	}
	return c, err
}

// PutCache keeps a cache, unless there is one with its key: what a key stands for never changes.
func (tx *Tx) PutCache(c CacheEntry) error {
	seq, err := tx.next("cache")
	if err != nil {
		return err
	}
	_, err = tx.exec(`INSERT INTO cache (project, trust, key, seq, trees, bytes, created_at, used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (project, trust, key) DO NOTHING`,
		string(c.Project), toInt(c.Trust), c.Key, toInt(seq), toText(c.Trees), toInt(c.Bytes), toInt(tx.now), toInt(tx.now))
	return err
}

// TouchCache notes that a cache was found.
func (tx *Tx) TouchCache(project forge.ProjectName, trust forge.TrustClass, key string) error {
	_, err := tx.exec(`UPDATE cache SET used_at = ? WHERE project = ? AND trust = ? AND key = ?`, toInt(tx.now), string(project), toInt(trust), key)
	return err
}

// Caches lists the caches of a project by key, those after the given one, at most limit.
func (v *View) Caches(project forge.ProjectName, after string, limit int) ([]CacheEntry, error) {
	return list(v, `SELECT `+cacheColumns+` FROM cache c WHERE c.project = ? AND c.key > ? ORDER BY c.key, c.trust LIMIT ?`, cacheInto,
		string(project), after, page(limit))
}

// RemoveCaches forgets the caches of a project whose key begins so, and counts them. Their objects stay.
func (tx *Tx) RemoveCaches(project forge.ProjectName, prefix string) (n int, err error) {
	all, err := list(&tx.View, `SELECT `+cacheColumns+` FROM cache c WHERE c.project = ?`, cacheInto, string(project))
	for i := 0; err == nil && i < len(all); i++ {
		if strings.HasPrefix(all[i].Key, prefix) {
			n++
			_, err = tx.exec(`DELETE FROM cache WHERE project = ? AND trust = ? AND key = ?`, string(project), toInt(all[i].Trust), all[i].Key)
		}
	}
	return n, err
}

package store

import "github.com/forgeyard/forgeyard/internal/forge"

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

// CacheFilter selects caches of a project by their keys; zero fields select all.
type CacheFilter struct {
	Project    forge.ProjectName
	Key        string           // only those with this one, of each class of trust
	Prefix     string           // only those that begin so
	After      string           // only those behind this key and AfterTrust: the last of the page before
	AfterTrust forge.TrustClass // likewise
	Limit      int
}

// ofCaches is what a filter takes, whatever its page. substr and not LIKE, as above.
const ofCaches = `c.project = ? AND substr(c.key, 1, ?) = ? AND (? = '' OR c.key = ?)`

func (f *CacheFilter) args() []any {
	return []any{string(f.Project), int64(len([]rune(f.Prefix))), f.Prefix, f.Key, f.Key}
}

// Caches lists caches by key, and those of one key by their class of trust.
func (v *View) Caches(f CacheFilter) ([]CacheEntry, error) {
	return list(v, `SELECT `+cacheColumns+` FROM cache c WHERE `+ofCaches+` AND (c.key > ? OR c.key = ? AND c.trust > ?)
		ORDER BY c.key, c.trust LIMIT ?`, cacheInto, append(f.args(), f.After, f.After, toInt(f.AfterTrust), page(f.Limit))...)
}

// RemoveCaches forgets caches, whatever After and Limit of the filter are, and returns them. Their objects stay.
func (tx *Tx) RemoveCaches(f CacheFilter) (gone []CacheEntry, err error) {
	gone, err = list(&tx.View, `SELECT `+cacheColumns+` FROM cache c WHERE `+ofCaches+` ORDER BY c.key, c.trust`, cacheInto, f.args()...)
	if err == nil && len(gone) > 0 {
		_, err = tx.exec(`DELETE FROM cache AS c WHERE `+ofCaches, f.args()...)
	}
	return gone, err
}

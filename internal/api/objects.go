package api

// The requests around objects, which are bytes under their digest (package cas), and what jobs keep of them. What a project
// holds is all that it can ask for: an object of another project is not there.

// Bounds of what travels at once.
const (
	// MaxMissing is how many objects one request may ask about.
	MaxMissing = 4096
	// MaxBatchBytes bounds a batch of objects: its body, and what that decodes to.
	MaxBatchBytes = 8 << 20
	// MaxBatchObjects bounds the objects of a batch.
	MaxBatchObjects = 4096
	// MaxBatchObject is up to which size an object travels in a batch. A larger one has a PUT of its own.
	MaxBatchObject = 1 << 20
	// MaxRatio is how many bytes one byte of an encoded batch may stand for.
	MaxRatio = 256
	// MaxFindings bounds the findings that a verification lists. It counts them all.
	MaxFindings = 1000
)

// Names of headers and media types around objects.
const (
	// HeaderUploadOffset is, in a PUT, which byte of the object the body begins with; absent is 0. In answers it is how many
	// bytes are there, which the next PUT has to go on from.
	HeaderUploadOffset = "Upload-Offset"
	// HeaderUploadComplete is ?1 or ?0 in answers: whether the object is there, whole and verified.
	HeaderUploadComplete = "Upload-Complete"
	// TypeObjects is a batch: for each object its reference and a line feed, then its bytes, and nothing between two.
	TypeObjects = "application/vnd.forgeyard.objects"
	TypeTar     = "application/x-tar"
	// EncodingZstd is the one Content-Encoding that a batch may have.
	EncodingZstd = "zstd"
)

// MissingRequest asks which objects a project has not got, or whether it has a tree: POST cas:missing.
type MissingRequest struct {
	Project string   `json:"project,omitempty"` // the default project where none is named
	Refs    []string `json:"refs,omitempty"`    // at most MaxMissing
	Tree    *Tree    `json:"tree,omitempty"`    // instead of Refs
}

// MissingAnswer lists those of the objects that are missing, in their order, each once.
type MissingAnswer struct {
	Missing  []string `json:"missing"`
	Complete *bool    `json:"complete,omitempty"` // of a tree: whether the project has all of it
}

// BatchAnswer says what became of each object of a batch, in their order: POST cas:batch.
type BatchAnswer struct {
	Objects []BatchResult `json:"objects"`
}

// BatchResult is one object of a batch. It is stored unless there is a code.
type BatchResult struct {
	Ref    string `json:"ref"`
	Code   Code   `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Upload says how much of an object is there: the answer to PUT cas/{ref}.
type Upload struct {
	Ref      string `json:"ref"`
	Offset   uint64 `json:"offset"`
	Complete bool   `json:"complete"`
}

// ObjectStat is what the daemon's store has: GET cas:stat.
type ObjectStat struct {
	Objects     uint64 `json:"objects"`
	Bytes       uint64 `json:"bytes"`
	Arriving    uint64 `json:"arriving_bytes"` // of objects that are not whole yet
	Quarantined uint64 `json:"quarantined"`
	Held        uint64 `json:"held"` // an object that two projects hold counts twice
	Free        uint64 `json:"free_bytes"`
	KeptFree    uint64 `json:"kept_free_bytes"` // below which nothing is taken
	Low         bool   `json:"low"`
	Full        bool   `json:"full"`
}

// ObjectFinding is something wrong in the store. It is the data of an event EventFinding of POST cas:verify, and then the
// object has been set aside.
type ObjectFinding struct {
	Ref  string `json:"ref,omitempty"`
	Path string `json:"path,omitempty"`
	What string `json:"what"`
}

// ObjectReport sums a verification up. It is the data of its event EventEnd.
type ObjectReport struct {
	Objects  uint64 `json:"objects"`
	Bytes    uint64 `json:"bytes"` // that were read
	Findings uint64 `json:"findings"`
	Problem  string `json:"problem,omitempty"` // why it could not go on to the end
}

// EventFinding is the name of an event of a verification.
const EventFinding = "finding"

// ObjectExplanation says why an object is kept: GET cas/{ref}/explain.
type ObjectExplanation struct {
	Ref     string         `json:"ref"`
	OnDisk  bool           `json:"on_disk"`
	Holders []ObjectHolder `json:"holders,omitempty"` // the first 100
	Uses    []ObjectUse    `json:"uses,omitempty"`    // as the root of what a job kept, the newest 100
}

// ObjectHolder is a project that holds an object.
type ObjectHolder struct {
	Project   string `json:"project"`
	AddedAt   *Time  `json:"added_at,omitempty"`
	TouchedAt *Time  `json:"touched_at,omitempty"` // give or take some hours
}

// ObjectUse is an output whose root is an object.
type ObjectUse struct {
	Project string `json:"project"`
	Run     string `json:"run"`
	Job     string `json:"job"`
	Attempt string `json:"attempt"`
	Output  uint16 `json:"output"`
}

// Artifact is what an attempt kept for one declared output. Its id is that of the attempt, a point, and its place among what
// the attempt kept, from 0.
type Artifact struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"` // of the output
	Project   string  `json:"project"`
	Run       string  `json:"run"`
	Job       string  `json:"job"`
	JobKey    string  `json:"job_key"`
	Attempt   string  `json:"attempt"`
	Number    uint32  `json:"number"` // of the attempt
	Tree      bool    `json:"tree"`   // Ref is a tree, else one file
	Ref       string  `json:"ref"`
	Files     *uint64 `json:"files,omitempty"` // files, links and empty folders; absent where the store cannot say
	Bytes     *uint64 `json:"bytes,omitempty"` // of all files; likewise
	Depth     uint16  `json:"depth,omitempty"`
	Hazards   string  `json:"hazards,omitempty"` // why some platform cannot hold its names
	CreatedAt *Time   `json:"created_at,omitempty"`
}

// ArtifactFolder is an artifact with one folder of it: GET artifacts/{id}.
type ArtifactFolder struct {
	Artifact
	Path    string      `json:"path"` // of the folder, empty for the root
	Entries []TreeEntry `json:"entries"`
	Next    string      `json:"next,omitempty"` // the cursor of the next page
}

// TreeEntry is one name in a folder.
type TreeEntry struct {
	Name       string  `json:"name"`
	Kind       string  `json:"kind"` // file, folder, link
	Ref        string  `json:"ref,omitempty"`
	Bytes      uint64  `json:"bytes"`
	Files      *uint64 `json:"files,omitempty"` // of a folder
	Executable bool    `json:"executable,omitempty"`
	Target     string  `json:"target,omitempty"` // of a link
}

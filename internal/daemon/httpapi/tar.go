package httpapi

import (
	"archive/tar"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// tarTime is the time of everything in an archive, as in workspaces: equal trees are equal archives.
var tarTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// sendTar sends a folder, a file or a link of an artifact as an archive. Its length is not known before; whoever gets the end of
// the archive has got all of it, verified: otherwise the answer is cut.
func (s *Server) sendTar(w http.ResponseWriter, r *http.Request, k *kept, at *place) error {
	root := forge.TreeRef{}
	if at.entry.Kind == tree.Folder {
		entries, err := s.folder(r.Context(), at.project, at.entry.Ref) // to see that there is something to send
		if err != nil {
			return err
		}
		root = tree.TotalsOf(entries).Ref(at.entry.Ref)
	}
	name := at.entry.Name
	if at.path == "" {
		name = k.Name
	}
	foreign(w, name+".tar")
	w.Header().Set("Content-Type", api.TypeTar)
	if r.Method == http.MethodHead {
		return nil
	}
	a := archive{ctx: r.Context(), src: at.project, out: tar.NewWriter(&patient{w, http.NewResponseController(w)})}
	var err error
	if at.entry.Kind == tree.Folder {
		err = cas.Walk(r.Context(), at.project, root, a.add)
	} else {
		err = a.add(name, at.entry)
	}
	if err != nil {
		return err
	}
	return a.out.Close()
}

// archive writes a tree into a tar stream.
type archive struct {
	ctx context.Context //nolint:containedctx // of the one request that this lives in
	src cas.Source
	out *tar.Writer
}

func (a *archive) add(path string, e tree.Entry) error {
	// PAX, because it spells every name exactly that a tree can have, and every size.
	h := &tar.Header{Name: path, ModTime: tarTime, Format: tar.FormatPAX, Mode: 0o644}
	switch e.Kind {
	case tree.Folder:
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, path+"/", 0o755
	case tree.Link:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Target, 0o777
	case tree.File:
		h.Typeflag, h.Size = tar.TypeReg, int64(e.Ref.Bytes) //nolint:gosec // a reference to more is never stored
		if e.Executable {
			h.Mode = 0o755
		}
	}
	if err := a.out.WriteHeader(h); err != nil || e.Kind != tree.File {
		return err
	}
	in, err := a.src.Open(a.ctx, e.Ref)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	_, err = io.Copy(a.out, in)
	return err
}

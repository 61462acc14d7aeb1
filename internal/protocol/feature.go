package protocol

import (
	"slices"
	"strconv"
)

// Feature is something optional that both peers must know to use it (09§246). Numbers are only ever added. A feature
// hides no break: what every peer of a version must do is a version, not a feature.
type Feature uint16

// The features.
const (
	FeatureNone      Feature = 0 // of a message that needs none
	FeatureLogResume Feature = 1 // LogResume
	FeatureCASRange  Feature = 2 // CasRangeState: objects continue where they broke off
	FeatureLogZstd   Feature = 3 // log streams with encoding zstd
	FeatureCASZstd   Feature = 4 // object runs with encoding zstd
	FeatureProbe     Feature = 5 // ProbeRequest
	FeatureCASSnappy Feature = 6 // object runs with encoding snappy
)

// MaxFeatures bounds the features that one peer may list.
const MaxFeatures = 64

var featureNames = []string{"", "LogResumeV1", "CasRangeResumeV1", "LogZstdV1", "CasZstdV1", "HealthProbeV1", "CasSnappyV1"}

func (f Feature) String() string {
	if f > 0 && int(f) < len(featureNames) {
		return featureNames[f]
	}
	return "feature " + strconv.Itoa(int(f))
}

// FeatureSet is a set of features, ascending.
type FeatureSet []Feature

// Features is what this build knows.
func Features() FeatureSet {
	return FeatureSet{FeatureLogResume, FeatureCASRange, FeatureLogZstd, FeatureCASZstd, FeatureProbe, FeatureCASSnappy}
}

// Validate checks that features ascend and none is 0. A number that this build does not know is no fault: the
// intersection drops it.
func (s FeatureSet) Validate() error {
	var c Check
	c.Count("features", len(s), 0, MaxFeatures)
	for i, f := range s {
		c.That(f != 0 && (i == 0 || s[i-1] < f), "features", "numbers do not ascend from 1")
	}
	return c.Err()
}

// Has reports whether f is in the set. Every set has FeatureNone.
func (s FeatureSet) Has(f Feature) bool {
	_, found := slices.BinarySearch(s, f)
	return found || f == FeatureNone
}

// Intersect returns what is in both sets.
func (s FeatureSet) Intersect(other FeatureSet) FeatureSet {
	var both FeatureSet
	for _, f := range s {
		if other.Has(f) {
			both = append(both, f)
		}
	}
	return both
}

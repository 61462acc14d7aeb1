package org.example.words;

import java.util.Map;
import java.util.TreeMap;

/** Words and how often a text has them. */
public final class Words {
    private Words() {}

    /** Counts the words of a text. Capitals make no difference. */
    public static Map<String, Integer> count(String text) {
        Map<String, Integer> all = new TreeMap<>();
        for (String word : text.toLowerCase().split("[^\\p{L}]+")) {
            if (!word.isEmpty()) {
                all.merge(word, 1, Integer::sum);
            }
        }
        return all;
    }
}

package org.example.words;

import java.util.Map;

/** Tests without a framework: they end with an exception if something is wrong. */
public final class WordsTest {
    private WordsTest() {}

    /** Runs them. */
    public static void main(String[] args) {
        want(Map.of("to", 2, "be", 1), Words.count("To be, to"));
        want(Map.of(), Words.count(" ,"));
        System.out.println("2 tests passed");
    }

    private static void want(Object want, Object got) {
        if (!want.equals(got)) {
            throw new AssertionError(got + " is not " + want);
        }
    }
}

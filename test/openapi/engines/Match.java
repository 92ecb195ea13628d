import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Scanner;
import java.util.regex.Pattern;

/**
 * Matches texts against patterns: reads two lines, each a list of base64 texts separated by commas, and prints a JSON
 * row of booleans for each pattern. (The JDK has no JSON reader.)
 */
public class Match {
  public static void main(String[] arguments) {
    Scanner input = new Scanner(System.in);
    List<String> patterns = decode(input.nextLine());
    List<String> texts = decode(input.nextLine());
    List<List<Boolean>> rows = new ArrayList<>();
    for (String pattern : patterns) {
      Pattern expression = Pattern.compile(pattern);
      List<Boolean> row = new ArrayList<>();
      for (String text : texts) row.add(expression.matcher(text).find());
      rows.add(row);
    }
    System.out.println(rows);
  }

  private static List<String> decode(String line) {
    List<String> texts = new ArrayList<>();
    for (String part : line.split(",", -1))
      texts.add(new String(Base64.getDecoder().decode(part), java.nio.charset.StandardCharsets.UTF_8));
    return texts;
  }
}
